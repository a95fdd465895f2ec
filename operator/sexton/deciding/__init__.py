"""deciding"""
