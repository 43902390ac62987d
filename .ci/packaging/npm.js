// The npm package: one file that installs offline, as everything is bundled.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../bundling/bundling.js'
import { published } from './release.js'

const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const held = [...files, 'README.md', 'LICENSE']

/** Writes rsm-VERSION.tgz into the directory `out`. */
export function packNpm(out) {
  const stage = mkdtempSync(join(tmpdir(), 'rsm-package-'))
  try {
    for (const path of held) cpSync(join(root, path), join(stage, path), { recursive: true })
    writeFileSync(join(stage, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
    const [{ filename }] = JSON.parse(
      execFileSync('npm', ['pack', '--json'], { cwd: stage, encoding: 'utf8' }),
    )
    cpSync(join(stage, filename), join(out, filename))
  } finally {
    rmSync(stage, { recursive: true, force: true })
  }
}
