"""From a frame to what is published: counted, checked, thresholded, noised, sealed with its certificate."""
