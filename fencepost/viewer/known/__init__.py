"""What is known from outside of the brokers: by answers to clients, and by what an application wrote.

Owns nothing by itself; application_processes imports client_knowledge. Must not know brokers or drawing.
"""
