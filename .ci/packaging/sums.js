// What goes along with a release: what is in it, its sums, and who vouches for them.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../bundling/bundling.js'
import { nodeVersion } from './fetched.js'
import { date, gitHead } from './release.js'

/** CycloneDX of the packages that are bundled, as npm knows them, and of Node. */
export function writeSbom(file) {
  const words = ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev', '--package-lock-only']
  const bill = JSON.parse(
    execFileSync('npm', words, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  )
  // What npm makes up at each run.
  delete bill.serialNumber
  bill.metadata.timestamp = `${date}T00:00:00.000Z`
  if (gitHead !== null) bill.metadata.component.version += `+${gitHead.slice(0, 8)}`
  bill.components.push({
    type: 'platform',
    name: 'node',
    version: nodeVersion,
    purl: `pkg:generic/node@${nodeVersion}`,
    licenses: [{ license: { id: 'MIT' } }],
  })
  writeFileSync(file, `${JSON.stringify(bill, null, 2)}\n`)
}

/** Writes SHA256SUMS of these files, in this order. */
export function writeSums(out, names) {
  const lines = names.map((name) => {
    const sum = createHash('sha256')
      .update(readFileSync(join(out, name)))
      .digest('hex')
    return `${sum}  ${name}\n`
  })
  writeFileSync(join(out, 'SHA256SUMS'), lines.join(''))
}

/** Signs SHA256SUMS with a private key of OpenSSH; `ssh-keygen -Y verify -n rsm-release` looks at it. */
export function signSums(out, key) {
  execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-n', 'rsm-release', '-f', key, join(out, 'SHA256SUMS')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
