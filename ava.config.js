import { readFileSync, writeSync } from 'node:fs'

/** A file runs for seconds: optimizing sooner than this does not pay. */
const quick = ['--interrupt-budget=2000000']

/** The longest time that a test of this file is given, in milliseconds; 0 where all have the usual one. */
const longest = (file) =>
  Math.max(0, ...Array.from(readFileSync(file, 'utf8').matchAll(/t\.timeout\(([\d_]+)\)/g), ([, time]) => Number(time.replaceAll('_', ''))))

/**
 * Of both suites: `npm test` and `npm run test:long` (.ci/test.js) say by RSM_TESTS how the files that they name are run. Without it,
 * `npx ava FILE` runs any file of either suite.
 */
const ways = {
  /** Tests that start nothing. Threads take no flags of V8. */
  threads: { workerThreads: true, nodeArguments: [], concurrency: 2, timeout: '60s' },
  /** One test at a time. A larger nursery saves a twentieth of the time; tests that measure memory are long ones. */
  serial: { serial: true, nodeArguments: [...quick, '--min-semi-space-size=32', '--max-semi-space-size=64'], timeout: '60s' },
  /** All tests of a file at a time: they mostly wait. What may take minutes begins first. */
  long: { concurrency: 2, timeout: '10m', sortTestFiles: (one, other) => longest(other) - longest(one) },
  'long-serial': { serial: true, timeout: '10m' },
}

/** Sends what happens to .ci/test.js, as JSON lines on descriptor 3; output of tests as text. */
async function report({ events }) {
  for await (const { chunk, pendingTests, ...event } of events) {
    if (event.type === 'stats') continue
    if (chunk) event.text = Buffer.from(chunk).toString()
    if (pendingTests) event.pending = [...pendingTests].map(([file, titles]) => [file, [...titles]])
    writeSync(3, `${JSON.stringify(event)}\n`)
  }
}

const way = process.env.RSM_TESTS
export default {
  files: ['dist/test/**/*.test.js', ...(way ? ['dist/test-groups/*.test.js'] : [])],
  // Threads of one process share its descriptors: a late close in one would hit another's.
  workerThreads: false,
  concurrency: 2,
  nodeArguments: quick,
  timeout: '10m',
  environmentVariables: { NO_COLOR: '1', RSM_URL: '', RSM_TOKEN: '' },
  ...ways[way],
  ...(way && { nonSemVerExperiments: { observeRunsFromConfig: true }, observeRun: report }),
}
