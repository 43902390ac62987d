// Bundles the server and the programs that tests start repeatedly, each into one file that replaces the output of tsc: finding and
// reading a thousand modules takes longer than the rest of a start.
import { build } from 'esbuild'
import { root } from './bundling/bundling.js'

await build({
  absWorkingDir: root,
  entryPoints: ['agent-process', 'newer-server-process', 'server-main', 'server-process'].map(
    (name) => `test/fixtures/${name}.ts`,
  ),
  outdir: 'dist/test/fixtures',
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.18',
  // #fault-point is one of two files, chosen by --conditions. The packages are native or load native ones.
  external: ['#fault-point', 'node-pty', 'ssh2', 'pg-native'],
  // The packages are CommonJS; the `require` of esbuild does not find built-in modules.
  banner: {
    js: "const require=process.getBuiltinModule('node:module').createRequire(import.meta.url);",
  },
  logLevel: 'warning',
})
