// The files of the deb and the rpm, at their paths on a system.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { root } from '../bundling/bundling.js'
import { nodeFor } from './fetched.js'
import { manPages } from './man.js'
import { date, epoch, published } from './release.js'

const read = (path) => readFileSync(join(root, path), 'utf8')
const completion = (shell) =>
  execFileSync(process.execPath, [join(root, 'bin/run.js'), 'completion', shell], { encoding: 'utf8' })

/** The licence of rsm in Debian's format; the notices of bundled packages are beside it. */
function copyright() {
  const indented = (text) => text.trim().replaceAll(/^/gm, ' ').replaceAll(/^ +$/gm, ' .')
  const [, mit = ''] = /\n\n(Permission[\s\S]*)/.exec(read('LICENSE')) ?? []
  return [
    'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/',
    'Upstream-Name: rsm',
    'Comment: The executable holds Node.js and packages of npm. Their notices are',
    ' in node-license.gz and third-party.gz beside this file.',
    '',
    'Files: *',
    `Copyright: ${date.slice(0, 4)} rsm authors`,
    'License: Expat',
    indented(mit),
    '',
  ].join('\n')
}

const day = new Date(epoch * 1000).toUTCString().replace('GMT', '+0000')
const changelog = `rsm (${published.version}) unstable; urgency=medium\n\n  * See the repository.\n\n -- rsm authors <rsm@example.org>  ${day}\n`

/** Every directory and file gets the same time, so that the same commit makes the same package. */
export function settle(directory) {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) settle(path)
    else utimesSync(path, epoch, epoch)
  }
  chmodSync(directory, 0o755)
  utimesSync(directory, epoch, epoch)
}

/** Writes them below `directory`, with the executable of a machine; `zsh` is that shell's directory for completions. */
export function layOut(directory, machine, executable, zsh) {
  const put = (path, contents, mode = 0o644) => {
    const file = join(directory, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, contents)
    chmodSync(file, mode)
  }
  const zipped = (text) => gzipSync(text, { level: 9 })
  put('usr/bin/rsm', '')
  copyFileSync(executable, join(directory, 'usr/bin/rsm'))
  chmodSync(join(directory, 'usr/bin/rsm'), 0o755)
  for (const unit of ['rsm-server.service', 'rsm-agent.service'])
    put(`usr/lib/systemd/system/${unit}`, read(`packaging/units/${unit}`))
  put('usr/lib/sysusers.d/rsm.conf', read('packaging/units/rsm.sysusers'))
  put('usr/share/bash-completion/completions/rsm', completion('bash'))
  put(`${zsh}/_rsm`, completion('zsh'))
  put('usr/share/fish/vendor_completions.d/rsm.fish', completion('fish'))
  for (const [name, text] of manPages()) put(`usr/share/man/man1/${name}.gz`, zipped(text))
  put('usr/share/doc/rsm/copyright', copyright())
  put('usr/share/doc/rsm/third-party.gz', zipped(read('dist/THIRD-PARTY.txt')))
  put('usr/share/doc/rsm/node-license.gz', zipped(readFileSync(join(nodeFor(machine), 'LICENSE'), 'utf8')))
  put('usr/share/doc/rsm/changelog.gz', zipped(changelog))
  mkdirSync(join(directory, 'etc/rsm'), { recursive: true })
}
