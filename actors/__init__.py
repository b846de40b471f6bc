"""The Ray actors: gateway, replica, purgatory, broker, controller, and the links between them."""
