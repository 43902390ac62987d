// Settings of every bundle of rsm: its parts, and which modules are replaced by which. Unbundled, most of a start went into finding
// and reading hundreds of modules.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { decode, encode } from '@jridgewell/sourcemap-codec'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const filesIn = (directory) =>
  readdirSync(join(root, directory), { encoding: 'utf8', recursive: true })

/** The commands of each part, by their file in src/commands: an agent neither contains nor reads the code of a server. */
const belongsTo = {
  agent: (name) => name.startsWith('agent/'),
  server: (name) => /^(server\/|quickstart\.)/.test(name),
  cli: (name) => !/^(agent|server)\/|^quickstart\./.test(name),
}
export const parts = Object.keys(belongsTo)
/** Without file extensions, as `commands/hosts/list`. */
export const commandsOf = (part) =>
  filesIn('src/commands')
    .filter((name) => name.endsWith('.ts') && belongsTo[part](name))
    .map((name) => `commands/${name.slice(0, -3)}`)
/** The processes of its own that an agent starts: file, and the export that bin/run.js calls. */
export const agentProcesses = {
  printDiskSize: 'agent/reports/facts-process',
  serveTerminals: 'agent/terminals/pty-process',
  upgradeAgent: 'agent/upgrade/upgrade',
  workOnFiles: 'agent/files/worker',
}

const oclif = createRequire(join(root, 'node_modules/@oclif/core/lib/index.js'))
const table = createRequire(oclif.resolve('cli-table3'))

/** Loads the other module at the first access. The target is a bound function because it has no own property that a proxy must show. */
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
    return [file, () => contents(`require(${JSON.stringify(file)})`)]
  })
/** Modules that packages load at start although hardly a command needs them, and their replacements. */
const replaced = new Map([
  ...modules(oclif, ['./parser/help', './ux/action/spinner'], onDemand(true)),
  ...modules(oclif, ['clean-stack', 'indent-string', 'wrap-ansi'], onDemand(false)),
  ...modules(table, ['@colors/colors/safe.js'], onDemand(false)),
  // oclif logs only if DEBUG is set; without it `debug` need not be loaded.
  ...modules(oclif, ['debug'], (other) => `module.exports = process.env.DEBUG ? ${other} : () => () => {}`),
])
/**
 * Parts of oclif for programs that leave their whole command line to it: half of a bundle, and unused here. Help, which needs the
 * real ones, imports them by their names.
 */
const unneeded = new Set(
  [
    ['command', 'config'],
    ['flags', 'help'],
    ['errors/handle', 'help'],
  ].map(([by, what]) => `${oclif.resolve(`./${by}`)} ${oclif.resolve(`./${what}`)}`),
)
const unused = new Set([...replaced.keys(), ...unneeded])

/** The checkout itself may be below a node_modules. */
const isOfPackage = (path) => relative(root, path).split(sep).includes('node_modules')

/** The file that an import of a package resolves to; undefined for an optional package that is not installed. */
function required(path, importer) {
  try {
    return createRequire(importer).resolve(path)
  } catch {
    return undefined
  }
}

const lean = {
  name: 'lean',
  setup(bundle) {
    bundle.onResolve({ filter: /./ }, ({ path, importer, namespace, kind, resolveDir }) => {
      if (namespace !== 'file' || kind === 'entry-point' || !isOfPackage(importer)) return undefined
      const file = required(path, importer)
      const pair = `${importer} ${file}`
      if (unneeded.has(pair)) {
        unused.delete(pair)
        return { path: relative(root, file), namespace: 'unneeded' }
      }
      return replaced.has(file)
        ? { path: relative(root, file), namespace: 'replaced', pluginData: resolveDir }
        : undefined
    })
    bundle.onLoad({ filter: /./, namespace: 'replaced' }, ({ path, pluginData: resolveDir }) => {
      const file = join(root, path)
      unused.delete(file)
      return { contents: replaced.get(file)(), resolveDir }
    })
    bundle.onLoad({ filter: /./, namespace: 'unneeded' }, () => ({ contents: 'exports.__esModule = true' }))
  },
}
/** Bundles only the key reader of blessed: it requires its widgets by computed names, which no bundler follows. */
const keys = {
  name: 'keys',
  setup(bundle) {
    bundle.onResolve({ filter: /^blessed$/ }, () => ({ path: 'blessed', namespace: 'keys' }))
    bundle.onLoad({ filter: /./, namespace: 'keys' }, () => ({
      contents: "exports.program = require('blessed/lib/program.js')",
      resolveDir: root,
    }))
  },
}
/** Bundles only the disk part of systeminformation: the whole is four times the rest of the process that uses it. */
const disks = {
  name: 'disks',
  setup(bundle) {
    bundle.onResolve({ filter: /^systeminformation$/ }, () => ({
      path: 'systeminformation',
      namespace: 'disks',
    }))
    bundle.onLoad({ filter: /./, namespace: 'disks' }, () => ({
      contents: "exports.fsSize = require('systeminformation/lib/filesystem.js').fsSize",
      resolveDir: root,
    }))
  },
}
/** ssh2 needs its own path only for programs of other systems; modules of a bundle have none. */
const head = (path) => (/\/node_modules\/ssh2\/lib\//.test(path) ? 'const __dirname = "";' : '')
/** Stack traces name lines of our sources, but only the files of packages: a map with their lines is three times as large. */
const ownMapsOnly = {
  name: 'own maps only',
  setup(bundle) {
    // esbuild reads a file's own map; this one maps only the first character, so almost nothing remains.
    const none = Buffer.from('{"version":3,"sources":["package"],"mappings":"AAAA"}').toString('base64')
    const comment = `\n//# sourceMappingURL=data:application/json;base64,${none}`
    bundle.onLoad({ filter: /\.[cm]?js$/ }, ({ path, namespace }) =>
      namespace === 'file' && isOfPackage(path)
        ? { contents: head(path) + readFileSync(path, 'utf8') + comment, loader: 'js' }
        : undefined,
    )
  },
}

/** A trace names files and lines, so columns, the largest part of a map, are left out. */
function linesOnly(map) {
  const lines = decode(map.mappings).map((places) =>
    places
      .filter(
        ([, source, line], at) => at === 0 || source !== places[at - 1][1] || line !== places[at - 1][2],
      )
      .map((place) => place.slice(0, 4)),
  )
  return { ...map, names: [], mappings: encode(lines) }
}
const thinMaps = {
  name: 'thin maps',
  setup(bundle) {
    bundle.onEnd(({ metafile }) => {
      for (const name of Object.keys(metafile?.outputs ?? {})) {
        if (!name.endsWith('.map')) continue
        const map = JSON.parse(readFileSync(join(root, name), 'utf8'))
        writeFileSync(join(root, name), JSON.stringify(linesOnly(map)))
      }
    })
  },
}

/**
 * Native code that makes ssh2 and pg faster but is optional: a bundle runs on every machine. And modules that pg needs only outside
 * of Node.
 */
const absent = {
  name: 'absent',
  setup(bundle) {
    bundle.onResolve(
      { filter: /^(cpu-features|pg-native|pg-cloudflare)$|\/sshcrypto\.node$/ },
      ({ path }) => ({
        path,
        namespace: 'absent',
      }),
    )
    bundle.onLoad({ filter: /./, namespace: 'absent' }, () => ({
      contents: "throw new Error('not bundled')",
    }))
  },
}

/** Options of every bundle. */
export const bundling = {
  absWorkingDir: root,
  bundle: true,
  minifySyntax: true,
  minifyWhitespace: true,
  // Node prints the source line of an uncaught error.
  lineLimit: 120,
  platform: 'node',
  target: 'node20.18',
  sourcemap: true,
  sourcesContent: false,
  plugins: [lean, keys, disks, absent, ownMapsOnly, thinMaps],
  legalComments: 'eof',
  logLevel: 'warning',
  metafile: true,
}
/** Replaces import.meta, which CommonJS does not have. */
export const commonJs = {
  format: 'cjs',
  define: { 'import.meta.dirname': '__dirname', 'import.meta.url': '""' },
}

/** Throws if an entry of `replaced` or `unneeded` matched no module; call it after the last bundle. */
export function expectAllUsed() {
  if (unused.size > 0)
    throw new Error(`nothing loads ${[...unused].join(', ')} any more: see "replaced" and "unneeded"`)
}
