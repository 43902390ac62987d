// The single executable: Node with rsm inside (https://nodejs.org/docs/latest-v22.x/api/single-executable-applications.html).
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { parts, root } from '../bundling/bundling.js'
import { nodeFor, postject } from './fetched.js'
import { scripts } from './parts.js'
import { published } from './release.js'
import { stripElf } from './strip-elf.js'

/** The fuse in an unmodified Node, which is where postject sets the bit that an application is inside. */
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

/** The assets by their names, each the path of a file. */
function assetsOf(machine, work) {
  const packageFile = join(work, 'package.json')
  writeFileSync(packageFile, JSON.stringify(published))
  const own = [
    'oclif.manifest.json',
    'packaging/install.sh',
    ...['dist/web', 'dist/docs', 'packaging/units'].flatMap((directory) =>
      readdirSync(join(root, directory)).map((name) => `${directory}/${name}`),
    ),
    `dist/native/linux-${machine}.node`,
  ].map((path) => [path, join(root, path)])
  const made = parts
    .flatMap((part) => [`${part}.cjs`, `${part}.id`, `${part}.cache`])
    .map((name) => [name, join(root, scripts, name)])
    // V8's code is for the machine that it was made on.
    .filter(([name, path]) => !name.endsWith('.cache') || (machine === process.arch && existsSync(path)))
  // Source maps are read only after a failure, and would be the largest files beside the code.
  const maps = parts.map((part) => {
    const path = join(work, `${part}.cjs.map.gz`)
    writeFileSync(path, gzipSync(readFileSync(join(root, scripts, `${part}.cjs.map`)), { level: 9 }))
    return [`${part}.cjs.map.gz`, path]
  })
  return Object.fromEntries([['package.json', packageFile], ...own, ...made, ...maps])
}

/** Writes the executable for a machine to `file`. */
export async function makeSingle(machine, file, work) {
  const config = join(work, 'sea.json')
  const blob = join(work, 'sea.blob')
  writeFileSync(
    config,
    JSON.stringify({
      main: join(root, scripts, 'main.cjs'),
      output: blob,
      disableExperimentalSEAWarning: true,
      execArgv: ['--disable-sigusr1'],
      assets: assetsOf(machine, work),
    }),
  )
  // The blob is the same for all machines, but Node must be the same.
  execFileSync(join(nodeFor(process.arch), 'bin/node'), ['--experimental-sea-config', config], {
    stdio: 'pipe',
  })
  rmSync(file, { force: true })
  writeFileSync(file, stripElf(readFileSync(join(nodeFor(machine), 'bin/node'))))
  const { inject } = createRequire(import.meta.url)(postject())
  await quietly(() => inject(file, 'NODE_SEA_BLOB', readFileSync(blob), { sentinelFuse: fuse }))
  chmodSync(file, 0o755)
}

/** postject warns of a section without a name, which does no harm. */
async function quietly(work) {
  const { warn, log } = console
  Object.assign(console, { warn: () => {}, log: () => {} })
  try {
    await work()
  } finally {
    Object.assign(console, { warn, log })
  }
}
