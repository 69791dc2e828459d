"""On how few hosts do domains fit?"""
