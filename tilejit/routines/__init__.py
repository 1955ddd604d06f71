"""NumPy's routines that copy: same names, arguments, answers and exceptions, faster."""
