// The Debian package, by dpkg-deb alone.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../bundling/bundling.js'
import { epoch, published } from './release.js'
import { settle } from './tree.js'

const filesBelow = (directory) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort()

const controlOf = (architecture, kib) => `Package: rsm
Version: ${published.version}
Section: admin
Priority: optional
Architecture: ${architecture}
Maintainer: rsm authors <rsm@example.org>
Installed-Size: ${kib}
Depends: libc6 (>= 2.28), libstdc++6 (>= 6), libgcc-s1
Recommends: bubblewrap, ca-certificates
Description: run shell scripts on many hosts and trust the result
 Server, agent and command line in one program. The agent connects to the
 server, runs what it signs, and keeps the output until it is stored.
`

/** Writes the package of a laid out tree, to which it adds what dpkg wants, to `file`. */
export function makeDeb(tree, architecture, file, preset) {
  const meta = join(tree, 'DEBIAN')
  mkdirSync(join(tree, 'usr/share/lintian/overrides'), { recursive: true })
  cpSync(join(root, 'packaging/debian/lintian-overrides'), join(tree, 'usr/share/lintian/overrides/rsm'))
  chmodSync(join(tree, 'usr/share/lintian/overrides/rsm'), 0o644)
  const held = filesBelow(tree).map((path) => ({ path, bytes: readFileSync(join(tree, path)) }))
  mkdirSync(meta)
  const sums = held.map(({ path, bytes }) => `${createHash('md5').update(bytes).digest('hex')}  ${path}\n`)
  const kib = held.reduce((sum, { bytes }) => sum + Math.ceil(bytes.length / 1024), 0)
  writeFileSync(join(meta, 'md5sums'), sums.join(''))
  writeFileSync(join(meta, 'control'), controlOf(architecture, kib))
  for (const name of ['postinst', 'prerm', 'postrm']) {
    cpSync(join(root, 'packaging/debian', name), join(meta, name))
    chmodSync(join(meta, name), 0o755)
  }
  settle(tree)
  // Always two threads: their number changes the bytes.
  execFileSync(
    'dpkg-deb',
    ['--root-owner-group', '-Zxz', `-z${preset}`, '--threads-max=2', '--build', tree, file],
    {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
      stdio: 'pipe',
    },
  )
}
