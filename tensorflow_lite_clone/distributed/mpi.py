def is_available():
    return False


def is_launched(n):
    return False
