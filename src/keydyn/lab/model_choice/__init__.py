"""Study: how many states, which family, smoothed or not?"""
