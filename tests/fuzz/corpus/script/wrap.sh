#!/bin/sh
#BERTH --wrap "x y" -G 1
