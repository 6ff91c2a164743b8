"""Study: does the model fit what people type?"""
