"""The flows over HTTP, in the order in which a start and then a request meet them.

    preparing                   checks a configuration before it is served: every problem at once
    listening                   its sockets
    running, workers            one process, or several of them on one store
    protocol                    uvicorn as it is run: heads of a bounded size and time, an orderly end
    application                 the routes, and the layers around them
    access_log                  one line for each request
    access, access_layer        who is let in, and how many at once
    limits, responses           what is read of a request, and what is answered
    openapi                     `GET /openapi.json` and `GET /docs`: made from flows and operations

Nothing is imported here: the process that only watches over workers does without FastAPI.
"""
