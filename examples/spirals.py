#!/usr/bin/env python3
"""Prints spirals.csv, the data of train.py: points of three noisy spiral arms, each with the number
of its arm.

    python3 examples/spirals.py > examples/spirals.csv

The output is always the same (fixed seed). No straight line separates the arms, so that a linear
model cannot learn them; two inputs and three classes keep the model small.
"""
import math
import random

ARMS, POINTS = 3, 1000
rng = random.Random(20)
rows = []
for arm in range(ARMS):
    for i in range(POINTS):
        radius = (i + 1) / POINTS
        angle = 2 * math.pi * arm / ARMS + 5 * radius + rng.gauss(0, 0.12)
        rows.append((radius * math.cos(angle), radius * math.sin(angle), arm))
rng.shuffle(rows)

print("x,y,arm")
for x, y, arm in rows:
    print(f"{x:.4f},{y:.4f},{arm}")
