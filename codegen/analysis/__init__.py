"""What passes need to know: dependences, bounds, legality of vectorization, reductions, costs."""
