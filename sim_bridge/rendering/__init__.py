"""Rendering without a screen: OpenGL contexts, MuJoCo renderer, lens distortion."""
