"""Webcams (USB Video Class) through OpenCV: colour alone."""
