// Bundles the browser console into dist/web: one script, one style sheet, one icon.
import { copyFile, rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const from = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url))

await rm(from('dist/web'), { recursive: true, force: true })
await build({
  entryPoints: [from('src/web/main.tsx')],
  outdir: from('dist/web'),
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['chrome111', 'firefox113', 'safari16.4'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'eof',
  logLevel: 'warning',
})
await copyFile(from('src/web/icon.svg'), from('dist/web/icon.svg'))
