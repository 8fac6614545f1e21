// One client of the comparison: npm `@kubernetes/client-node`. Reads a line per task (how many requests at once) and answers
// with a line.

import readline from 'node:readline';
import { createRequire } from 'node:module';

const [, , kubeconfig, packages] = process.argv;
const { KubeConfig, VersionApi } = await import(createRequire(packages + '/').resolve('@kubernetes/client-node'));
const config = new KubeConfig();
config.loadFromFile(kubeconfig);
const api = config.makeApiClient(VersionApi);
const ask = () => api.getCode().then(() => 'good', () => 'bad');

for await (const line of readline.createInterface({ input: process.stdin })) {
  const outcomes = await Promise.all(Array.from({ length: Number(line) }, ask));
  console.log(outcomes.join(' '));
}
