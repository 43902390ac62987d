import { availableParallelism } from 'node:os'

/** What takes longest begins first: else one of them runs alone at the end. */
const longest = [
  'server/routes/bad-input',
  'server/held-loop',
  'web/terminal',
  'e2e/fleet',
  'web/console',
  'faults/store',
  'e2e/api-tour',
  'server/engine/restart',
  'server/routes/access',
  'commands/services',
  'server/hub/slow-disk',
  'regular-expressions',
  'agent/executions/restart',
  'e2e/tls',
]
const placeOf = (file) => {
  const place = longest.findIndex((name) => file.endsWith(`${name}.test.js`))
  return place === -1 ? longest.length : place
}

export default {
  files: ['dist/test/**/*.test.js', '!dist/test/faults/long/**', '!dist/test/systemd/**', '!dist/test/cluster/**'],
  // In threads of one process all files would share descriptors: a late close of one would hit another's.
  workerThreads: false,
  // Tests wait for processes and disks: four files at a time fill two cores.
  concurrency: Math.max(4, availableParallelism()),
  // A file runs for seconds: what V8 spends on optimizing sooner than this, it never earns back.
  nodeArguments: ['--interrupt-budget=2000000'],
  timeout: '120s',
  sortTestFiles: (one, other) => placeOf(one) - placeOf(other) || (one < other ? -1 : 1),
  environmentVariables: { NO_COLOR: '1', RSM_URL: '', RSM_TOKEN: '' },
}
