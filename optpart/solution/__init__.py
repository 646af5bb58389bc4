"""Answers: goals, jobs, schedules, results and the verifier that accepts them (design §3).

The verifier shares no code with the rooms that build schedules.
"""
