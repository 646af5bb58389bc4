"""Gantt charts of schedules."""

from optpart.report.gantt.drawing import draw as draw
from optpart.report.gantt.drawing import png as png
