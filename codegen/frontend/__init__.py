"""Ways into the IR of kernels: functions of Python."""
