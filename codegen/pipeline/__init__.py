"""From a copy to kernels that run: the order of the passes, tuning, calibration, verification."""
