// The server and the programs that tests start again and again, each as one file in place of what tsc made: to find and read a thousand
// modules takes longer than all else of a start.
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
  // package.json says which of two it is, by how the process is started. The packages are native or load what is.
  external: ['#fault-point', 'node-pty', 'ssh2', 'pg-native'],
  // The packages are CommonJS; esbuild's own `require` finds no built-in module.
  banner: {
    js: "const require=process.getBuiltinModule('node:module').createRequire(import.meta.url);",
  },
  logLevel: 'warning',
})
