#!/bin/sh
# overlay_probe.sh - whether a file can be written to and removed from the overlay at hand.
echo >made && rm made
