PREDICTION = [9, 99, 9]


def before(n, slow, lanes, in_order):
    if in_order:
        return slow[0] - 1
    if len(slow) < lanes:
        return n - len(slow)
    return slow[lanes - 1] - lanes  # each lane is held by a slow book then


def loop(connection, paths, take):
    asked = {connection.request(path): path for path in paths}
    while asked:
        stream, body = connection.next_response()
        take(asked.pop(stream), body)


BECAUSE = ["A", "B"]
