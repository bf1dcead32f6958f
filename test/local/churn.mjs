// Informers of @kubernetes/client-node for churn.py: churn.mjs KUBECONFIG NAMESPACE MAPS WIDGETS END
//
// Prints "listening" when all of them are, and after the object named END one line of JSON for each: what its watches
// said, event by event, and what the informer made of it.
import { existsSync } from 'node:fs';
import process from 'node:process';

const library = new URL('../npm/node_modules/@kubernetes/client-node/dist/index.js', import.meta.url);
if (!existsSync(library)) {
    console.error('@kubernetes/client-node is not there; scripts/npm installs it');
    process.exit(1);
}
const k8s = await import(library);
const [kubeconfig, namespace, maps, widgets, end] = process.argv.slice(2);
const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);

// A watch that the server cuts after CUT seconds (0: when it wants to), and that tells what it hears.
class TappedWatch extends k8s.Watch {
    constructor(cut, tap) {
        super(config);
        this.cut = cut;
        this.tap = tap;
        this.watches = 0;
    }

    async watch(path, query, callback, done) {
        this.watches++;
        const tapped = (type, object, event) => {
            this.tap(type, object);
            return callback(type, object, event);
        };
        return super.watch(path, this.cut ? { ...query, timeoutSeconds: this.cut } : query, tapped, done);
    }
}

const note = (type, object) => [type, object.metadata.name, object.metadata.uid, object.metadata.resourceVersion];

function listener(path, list, cut) {
    const raw = [], seen = [];
    const watch = new TappedWatch(cut, (type, object) => {
        if (object.metadata?.name !== end) raw.push(note(type, object));
    });
    const informer = new k8s.ListWatch(path, watch, list, false);
    const title = `client-node, ${path.split('/').pop()}, ${cut ? `cut every ${cut} s` : 'one watch'}`;
    const finished = new Promise((resolve, reject) => {
        for (const [event, type] of [['add', 'ADDED'], ['update', 'MODIFIED'], ['delete', 'DELETED']]) {
            informer.on(event, (object) => {
                if (object.metadata.name === end) resolve();
                else seen.push(note(type, object));
            });
        }
        informer.on('error', (error) => reject(new Error(`${title}: ${error}`)));
    });
    return { informer, watch, title, raw, seen, finished };
}

const core = config.makeApiClient(k8s.CoreV1Api), custom = config.makeApiClient(k8s.CustomObjectsApi);
const [group, version] = widgets.split('/').slice(2);
const listMaps = () => core.listNamespacedConfigMap({ namespace });
const listWidgets = () => custom.listNamespacedCustomObject({ group, version, namespace, plural: widgets.split('/').pop() });
const listeners = [listener(maps, listMaps, 0), listener(maps, listMaps, 2), listener(widgets, listWidgets, 0), listener(widgets, listWidgets, 1)];

await Promise.all(listeners.map((l) => l.informer.start()));
console.log('listening');
await Promise.all(listeners.map((l) => l.finished));
const print = (value) => new Promise((resolve) => process.stdout.write(`${JSON.stringify(value)}\n`, resolve));
for (const l of listeners) {
    await l.informer.stop();
    await print({ title: `${l.title}: watch`, heard: l.raw, watches: l.watch.watches });
    await print({ title: `${l.title}: informer`, heard: l.seen, watches: l.watch.watches });
}
process.exit(0);
