// npm `@kubernetes/client-node` through the proxy: list, watch, and a command over a WebSocket.

import { createRequire } from 'node:module';
import { PassThrough } from 'node:stream';

const [, , kubeconfig, packages] = process.argv;
const { CoreV1Api, Exec, KubeConfig, Watch } = await import(createRequire(packages + '/').resolve('@kubernetes/client-node'));
const config = new KubeConfig();
config.loadFromFile(kubeconfig);
const pods = await config.makeApiClient(CoreV1Api).listNamespacedPod({ namespace: 'default' });
console.log('pods', pods.items.map((pod) => pod.metadata.name).join(' '));

await new Promise((done, failed) => {
  new Watch(config)
    .watch('/api/v1/namespaces/default/pods', {}, (_, pod) => {
      console.log('event', pod.metadata.name);
      done();
    }, (error) => error && failed(error))
    .catch(failed);
});

const stdout = new PassThrough();
stdout.on('data', (data) => console.log('exec', data.toString().trim()));
await new Promise((done, failed) => {
  new Exec(config)
    .exec('default', 'web', '', ['date'], stdout, null, null, false, (status) => done(console.log('status', status.status)))
    .catch(failed);
});
process.exit(0);
