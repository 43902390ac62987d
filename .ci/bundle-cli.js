// Bundles the command line into dist/cli: a file a command, one for completion, and what they share in chunks. Half of a
// start went into finding and reading 200 modules. What loads server or agent runs from dist/src; bin/run.js knows which
// is which.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const into = 'dist/cli'
const unbundled = /^(server|agent|quickstart)\b/
const filesIn = (directory) => readdirSync(join(root, directory), { encoding: 'utf8', recursive: true })
const commands = filesIn('src/commands')
  .filter((name) => name.endsWith('.ts') && !unbundled.test(name))
  .map((name) => `src/commands/${name}`)

/** What runs a command and draws its table. Other packages are loaded from where they are, when they are needed. */
const bundled = /^(@oclif\/core\/(command|flags|errors)|cli-table3|get-east-asian-width)$/
/** Which modules these load at once though hardly a command touches them; of oclif and of CommonJS alike. */
const transpiled = /^\.\.?\/(config|help|help\/index|action\/spinner)$/
const plain = /^(clean-stack|indent-string|wrap-ansi|@colors\/colors\/safe\.js)$/
/** What of these oclif exports stays where it is: half of the bundle would be there for nothing. */
const doors = ['@oclif/core/config', '@oclif/core/help']
const doorOf = (path) => doors.find((door) => path.replace(/\/index$/, '').endsWith(door.slice(11))) ?? path

/** A module in the place of another: `contents` gets the name by which the other is required. */
function instead(bundle, filter, contents) {
  const namespace = filter.source
  bundle.onResolve({ filter }, ({ path, importer, namespace: from, resolveDir }) =>
    importer.includes('/node_modules/') && from === 'file'
      ? { path, namespace, pluginData: resolveDir }
      : undefined,
  )
  bundle.onLoad({ filter, namespace }, ({ path, pluginData: resolveDir }) => ({
    contents: contents(`require(${JSON.stringify(doorOf(path))})`),
    resolveDir,
  }))
}

/** Loads the other when something of it is first read or called. */
const late = (isTranspiled) => (other) =>
  `module.exports = new Proxy(function () {}, {
    get: (_, name) => name === '__esModule' ? ${isTranspiled} : ${other}[name],
    apply: (_, self, words) => Reflect.apply(${other}, self, words),
    construct: (_, words) => Reflect.construct(${other}, words),
  })`

const lean = {
  name: 'lean',
  setup(bundle) {
    bundle.onResolve({ filter: /^[^./]/ }, ({ path, importer, namespace, kind }) => {
      const isOurs = kind !== 'entry-point' && namespace === 'file' && !importer.includes('/node_modules/')
      return isOurs && !bundled.test(path) ? { path, external: true } : undefined
    })
    instead(bundle, transpiled, late(true))
    instead(bundle, plain, late(false))
    // oclif speaks to who sets DEBUG; nobody else pays for that.
    instead(bundle, /^debug$/, (other) => `module.exports = process.env.DEBUG ? ${other} : () => () => {}`)
  },
}

const options = {
  absWorkingDir: root,
  outbase: 'src',
  outdir: into,
  bundle: true,
  external: doors,
  splitting: true,
  minifySyntax: true,
  minifyWhitespace: true,
  platform: 'node',
  target: 'node20.18',
  format: 'esm',
  // The packages are CommonJS; esbuild's own `require` finds no built-in module.
  banner: { js: "const require=process.getBuiltinModule('node:module').createRequire(import.meta.url);" },
  plugins: [lean],
  legalComments: 'eof',
  logLevel: 'warning',
  metafile: true,
}
const bundles = await Promise.all([
  build({ ...options, entryPoints: ['src/cli.ts', ...commands], inject: ['.ci/cli-shared.js'] }),
  // A Tab shares nothing with the commands: it would load what most of them load.
  build({ ...options, entryPoints: ['src/ui/completion/answer.ts'] }),
])
const made = new Set(bundles.flatMap(({ metafile }) => Object.keys(metafile.outputs)))
// Of a former bundle; removed last, for who may be running it.
for (const name of filesIn(into))
  if (name.endsWith('.js') && !made.has(`${into}/${name}`)) rmSync(join(root, into, name))
