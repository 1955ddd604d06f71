"""From copies to runnable kernels: pass order, tuning, calibration and verification."""
