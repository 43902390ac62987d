// Bundles rsm for an installed Node: each part into its own directory, with a file for each command and chunks for the code that
// they share; the browser console into dist/web: one script, one style sheet, one icon. Copies the files of packages that are
// read at run time. bin/run.js starts the bundle.
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { build } from 'esbuild'
import {
  agentProcesses,
  bundling,
  commandsOf,
  commonJs,
  expectAllUsed,
  filesIn,
  parts,
  root,
} from './bundling/bundling.js'
import { noticesOf, packagesOf } from './bundling/notices.js'

const options = {
  ...bundling,
  outbase: 'src',
  splitting: true,
  format: 'esm',
  // The packages are CommonJS; the `require` of esbuild does not find built-in modules.
  banner: { js: "const require=process.getBuiltinModule('node:module').createRequire(import.meta.url);" },
}
const source = (name) => `src/${name}.ts`
const entries = {
  cli: { inject: ['.ci/bundling/cli-shared.js'], entryPoints: [] },
  agent: { entryPoints: Object.values(agentProcesses).map(source) },
  server: { entryPoints: [] },
}
const bundlePart = (part) =>
  build({
    ...options,
    ...entries[part],
    outdir: `dist/${part}`,
    entryPoints: ['src/cli.ts', ...commandsOf(part).map(source), ...entries[part].entryPoints],
  })

/** The entry of completion is one CommonJS file, because Node starts that 10 ms sooner; its lazy modules are a separate bundle. */
async function bundleCompletion() {
  const late = new Set()
  const lateModules = {
    name: 'late modules',
    setup(bundle) {
      bundle.onResolve({ filter: /^\./ }, ({ path, kind, resolveDir }) => {
        if (kind !== 'dynamic-import') return undefined
        const file = join(resolveDir, path)
        late.add(relative(root, file))
        const from = relative(join(root, 'src/cli/completion'), file).replace(/\.ts$/, '.js')
        return { path: from.startsWith('.') ? from : `./${from}`, external: true }
      })
    },
  }
  const answer = await build({
    ...bundling,
    ...commonJs,
    outbase: 'src',
    outdir: 'dist/cli',
    entryPoints: ['src/cli/completion/answer.ts'],
    outExtension: { '.js': '.cjs' },
    plugins: [lateModules, ...bundling.plugins],
  })
  // Completion shares no chunk with the commands: it would load the code that most of them share.
  return [answer, await build({ ...options, outdir: 'dist/cli', entryPoints: [...late] })]
}

const bundleConsole = () =>
  build({
    absWorkingDir: root,
    entryPoints: ['src/web/main.tsx'],
    outdir: 'dist/web',
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['chrome111', 'firefox113', 'safari16.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'eof',
    logLevel: 'warning',
    metafile: true,
  })

const bundles = (await Promise.all([bundleConsole(), bundleCompletion(), ...parts.map(bundlePart)])).flat()
expectAllUsed()
const made = new Set(bundles.flatMap(({ metafile }) => Object.keys(metafile.outputs)))
// Remove files of the previous bundle last, because a process may still be running it.
for (const part of parts)
  for (const name of filesIn(`dist/${part}`))
    if (/\.(c?js|map)$/.test(name) && !made.has(`dist/${part}/${name}`))
      rmSync(join(root, `dist/${part}`, name))

function copy(from, to) {
  mkdirSync(join(root, to, '..'), { recursive: true })
  copyFileSync(from, join(root, to))
}
copy(join(root, 'src/web/icon.svg'), 'dist/web/icon.svg')
const require = createRequire(import.meta.url)
const swagger = join(require.resolve('@fastify/swagger-ui/package.json'), '../static')
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'])
  copy(join(swagger, name), `dist/docs/${name}`)
const nodePty = join(require.resolve('node-pty/package.json'), '..')
for (const machine of ['linux-x64', 'linux-arm64'])
  copy(join(nodePty, 'prebuilds', machine, 'pty.node'), `dist/native/${machine}.node`)
// Modules that npm compiled because the package ships no binary for this machine.
const compiled = join(nodePty, 'build/Release/pty.node')
if (existsSync(compiled)) copy(compiled, 'dist/native/compiled.node')
else rmSync(join(root, 'dist/native/compiled.node'), { force: true })

const held = bundles.flatMap(({ metafile }) => Object.keys(metafile.inputs))
const packages = packagesOf([...held, relative(root, swagger), relative(root, nodePty)])
writeFileSync(join(root, 'dist/THIRD-PARTY.txt'), noticesOf(packages))
const kinds = packages.map(({ name, version, kind }) => [`${name}@${version}`, kind])
writeFileSync(join(root, 'dist/third-party.json'), JSON.stringify(Object.fromEntries(kinds)))
