"""Webcams (USB Video Class) through OpenCV: color alone."""
