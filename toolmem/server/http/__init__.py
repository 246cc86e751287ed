"""The flows over HTTP, in the order in which a start and then a request meet them.

    preparing                   checks a configuration before it is served: every problem at once
    listening                   its sockets
    running, workers            one process, or several of them on one store
    protocol                    a connection, with bounds on what its peer may send
    application                 the routes, and the layers around them
    access_log, access          who came, and who may come in
    limits, answers             what is read of a request, and what is answered
    health                      `GET /health`
    openapi, examples, page     `GET /openapi.json` and `GET /docs`: made from the flows, with answers of a real run

Nothing is imported here: the process that only watches over workers does without FastAPI.
"""
