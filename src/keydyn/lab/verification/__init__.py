"""Study: how reliable are decisions?"""
