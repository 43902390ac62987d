// Bundles the command line into dist/cli: a file a command, one for completion, and what they share in chunks. Half of a
// start went into finding and reading 200 modules. What loads server or agent runs from dist/src; bin/run.js knows which
// is which.
import { readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative, sep } from 'node:path'
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
/** What oclif exports by these names stays where it is: half of the bundle would be there for nothing. */
const doors = ['@oclif/core/config', '@oclif/core/help']

const oclif = createRequire(join(root, 'node_modules/@oclif/core/lib/index.js'))
const table = createRequire(oclif.resolve('cli-table3'))

/** Loads the other when something of it is first asked for. A bound function has nothing of its own that a proxy may not hide. */
const onDemand = (isTranspiled) => (other) =>
  `module.exports = new Proxy(function () {}.bind(), {
    get: (_, name) => name === '__esModule' ? ${isTranspiled} : ${other}[name],
    has: (_, name) => name in ${other},
    ownKeys: () => Reflect.ownKeys(${other}),
    getOwnPropertyDescriptor: (_, name) => {
      const found = Reflect.getOwnPropertyDescriptor(${other}, name)
      return found && { ...found, configurable: true }
    },
    apply: (_, self, words) => Reflect.apply(${other}, self, words),
    construct: (_, words) => Reflect.construct(${other}, words),
  })`
const modules = (from, names, contents) =>
  names.map((name) => {
    const file = from.resolve(name)
    // A door stays by its name, all else is taken in.
    return [file, () => contents(`require(${JSON.stringify(doors.includes(name) ? name : file)})`)]
  })
/** What the bundled packages load at once though hardly a command touches it, and what stands in its place. */
const replaced = new Map([
  ...modules(oclif, [...doors, './parser/help', './ux/action/spinner'], onDemand(true)),
  ...modules(oclif, ['clean-stack', 'indent-string', 'wrap-ansi'], onDemand(false)),
  ...modules(table, ['@colors/colors/safe.js'], onDemand(false)),
  // oclif speaks to who sets DEBUG; nobody else pays for that.
  ...modules(oclif, ['debug'], (other) => `module.exports = process.env.DEBUG ? ${other} : () => () => {}`),
])
const unused = new Set(replaced.keys())

/** A checkout may itself lie below a node_modules. */
const isOfPackage = (path) => relative(root, path).split(sep).includes('node_modules')

/** The file that a package means; undefined where there is none, as of what it can do without. */
function required(path, importer) {
  try {
    return createRequire(importer).resolve(path)
  } catch {
    return undefined
  }
}

const namespace = 'replaced'
const lean = {
  name: 'lean',
  setup(bundle) {
    bundle.onResolve({ filter: /./ }, ({ path, importer, namespace: from, kind, resolveDir }) => {
      if (from !== 'file' || kind === 'entry-point') return undefined
      if (!isOfPackage(importer))
        return /^[./]/.test(path) || bundled.test(path) ? undefined : { path, external: true }
      const file = required(path, importer)
      return replaced.has(file)
        ? { path: relative(root, file), namespace, pluginData: resolveDir }
        : undefined
    })
    bundle.onLoad({ filter: /./, namespace }, ({ path, pluginData: resolveDir }) => {
      const file = join(root, path)
      unused.delete(file)
      return { contents: replaced.get(file)(), resolveDir }
    })
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
/** The completion's entry is one file of CommonJS, as Node starts that 10 ms sooner; what it loads late is a bundle of its own. */
const late = new Set()
const lateModules = {
  name: 'late modules',
  setup(bundle) {
    bundle.onResolve({ filter: /^\./ }, ({ path, kind, resolveDir }) => {
      if (kind !== 'dynamic-import') return undefined
      const file = join(resolveDir, path)
      late.add(relative(root, file))
      const from = relative(join(root, 'src/ui/completion'), file).replace(/\.ts$/, '.js')
      return { path: from.startsWith('.') ? from : `./${from}`, external: true }
    })
  },
}
const answer = await build({
  ...options,
  entryPoints: ['src/ui/completion/answer.ts'],
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  splitting: false,
  banner: {},
  plugins: [lateModules],
  packages: 'external',
})
const bundles = [
  answer,
  ...(await Promise.all([
    build({ ...options, entryPoints: ['src/cli.ts', ...commands], inject: ['.ci/cli-shared.js'] }),
    // A Tab shares nothing with the commands: it would load what most of them load.
    build({ ...options, entryPoints: [...late] }),
  ])),
]
if (unused.size > 0) throw new Error(`nothing loads ${[...unused].join(', ')} any more: see "replaced"`)
const made = new Set(bundles.flatMap(({ metafile }) => Object.keys(metafile.outputs)))
// Of a former bundle; removed last, for who may be running it.
for (const name of filesIn(into))
  if (/\.c?js$/.test(name) && !made.has(`${into}/${name}`)) rmSync(join(root, into, name))
