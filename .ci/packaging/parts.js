// The parts of rsm as one script each, and the small one that starts them, for the single executable: into dist/single.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { agentProcesses, bundling, commandsOf, commonJs, parts, root } from '../bundling/bundling.js'

export const scripts = 'dist/single'
const options = {
  ...bundling,
  ...commonJs,
  target: 'node22',
  // A script of a single executable has no loader of modules.
  supported: { 'dynamic-import': false },
  outdir: scripts,
}

const late = (name, file) =>
  `export const ${name} = async (...words) => (await import('./src/${file}.ts')).${name}(...words)`
const entry = {
  cli: late('answer', 'cli/completion/answer'),
  agent: Object.entries(agentProcesses)
    .map(([name, file]) => late(name, file))
    .join('\n'),
  server: '',
}
const contentsOf = (part) => `
  const commands = {
    ${commandsOf(part)
      .map((path) => `${JSON.stringify(path)}: () => import('./src/${path}.ts')`)
      .join(',\n')}
  }
  export const main = async (argv) => (await import('./src/cli.ts')).main(argv, (path) => commands[path]())
  ${entry[part]}`

/** In place of files. */
const single = {
  name: 'single',
  setup(bundle) {
    const file = join(root, 'bin/from-one-file.js')
    bundle.onResolve({ filter: /^\.\/from-files\.js$/ }, () => ({ path: file }))
  },
}

export async function bundleParts() {
  const outExtension = { '.js': '.cjs' }
  await Promise.all([
    build({
      ...options,
      outExtension,
      entryPoints: { main: 'bin/run.js' },
      sourcemap: false,
      plugins: [single],
    }),
    ...parts.map(async (part) => {
      const stdin = { contents: contentsOf(part), resolveDir: root, sourcefile: `${part}.js` }
      const outfile = join(scripts, `${part}.cjs`)
      await build({ ...options, outdir: undefined, outfile, stdin })
      const hash = createHash('sha256').update(readFileSync(join(root, outfile)))
      writeFileSync(join(root, scripts, `${part}.id`), hash.digest('hex').slice(0, 32))
    }),
  ])
}
