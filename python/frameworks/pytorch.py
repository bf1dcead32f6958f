"""PyTorch: linear models and networks, by stochastic gradient descent on the CPU."""

import importlib

from .common import Adapter, number, sizes, whole, word

LINEAR = {"lr": number(0, above=True), "epochs": whole(1, 100000), "batch_size": whole(1), "weight_decay": number(0),
          "optimizer": word("SGD", "Adam")}


class Fitted:
    """A network with what trained it."""

    def __init__(self, network, optimizer, batch_size, hinge):
        self.network, self.optimizer, self.batch_size, self.hinge = network, optimizer, batch_size, hinge
        self.epochs = 0


class Pytorch(Adapter):
    NAME = "pytorch"
    MODULES = ("torch",)
    NEEDS = "the packages torch and numpy"
    TASKS = ("train", "feature_selection", "hyperparameter_tuning")
    ALGORITHMS = {"logistic_regression": LINEAR, "svm": LINEAR, "neural_network": {"hidden_sizes": sizes(), **LINEAR}}
    GRIDS = {
        "logistic_regression": {"lr": [0.01, 0.1]}, "svm": {"lr": [0.01, 0.1]},
        "neural_network": {"hidden_sizes": [[20], [50]], "lr": [0.001, 0.01]},
    }

    def prepare(self, data):
        torch = importlib.import_module("torch")
        data.native = (torch.tensor(data.x, dtype=torch.float32),
                       torch.tensor(data.y, dtype=torch.float32).reshape(-1, 1))
        return data

    def _network(self, features, hidden):
        nn = importlib.import_module("torch").nn
        layers, width = [], features
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        return nn.Sequential(*layers, nn.Linear(width, 1))

    def fit(self, algorithm, parameters, data, seed):
        torch = importlib.import_module("torch")
        torch.manual_seed(seed)
        hidden = parameters.get("hidden_sizes", [50]) if algorithm == "neural_network" else []
        network = self._network(len(data.names), hidden)
        optimizer = getattr(torch.optim, parameters.get("optimizer", "Adam"))(
            network.parameters(), lr=parameters.get("lr", 0.01), weight_decay=parameters.get("weight_decay", 0.0))
        model = Fitted(network, optimizer, parameters.get("batch_size", 64), algorithm == "svm")
        log_loss, (x, y) = torch.nn.BCEWithLogitsLoss(), data.native
        for _ in range(parameters.get("epochs", 20)):
            for rows in torch.randperm(len(data.y)).split(model.batch_size):
                optimizer.zero_grad()
                out = network(x[rows])
                loss = torch.relu(1 - out * (2 * y[rows] - 1)).mean() if model.hinge else log_loss(out, y[rows])
                loss.backward()
                optimizer.step()
            model.epochs += 1
        return model

    def outputs(self, model, data):
        torch = importlib.import_module("torch")
        with torch.no_grad():
            out = model.network(data.native[0]).reshape(-1)
            if not model.hinge:
                out = torch.sigmoid(out)
        return "margin" if model.hinge else "probability", out.numpy()

    def _layers(self, model):
        nn = importlib.import_module("torch").nn
        return [layer for layer in model.network if isinstance(layer, nn.Linear)]

    def parameters_of(self, algorithm, model):
        group = model.optimizer.param_groups[0]
        found = {"lr": group["lr"], "weight_decay": group["weight_decay"], "epochs": model.epochs,
                 "batch_size": model.batch_size, "optimizer": type(model.optimizer).__name__}
        if algorithm == "neural_network":
            found["hidden_sizes"] = [layer.out_features for layer in self._layers(model)[:-1]]
        return found

    def importances(self, model):
        layers = self._layers(model)
        return self.weights(model) if len(layers) == 1 else None

    def weights(self, model):
        return abs(self._layers(model)[0].weight.detach().numpy()).sum(0)


ADAPTER = Pytorch
