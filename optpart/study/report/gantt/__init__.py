"""Gantt charts of schedules."""

from optpart.study.report.gantt.drawing import draw as draw
from optpart.study.report.gantt.drawing import png as png
