// Files beside a release: its list of contents, its checksums and their signature.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../bundling/bundling.js'
import { nodeVersion } from './fetched.js'
import { date, gitHead, published } from './release.js'

/** CycloneDX of the packages that `npm run build` has bundled, as npm knows them, and of Node. */
export function writeSbom(file) {
  const bundled = JSON.parse(readFileSync(join(root, 'dist/third-party.json'), 'utf8'))
  const words = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']
  const bill = JSON.parse(
    execFileSync('npm', words, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  )
  const own = bill.metadata.component
  // Values that npm generates at each run, or takes from the path of the checkout.
  delete bill.serialNumber
  bill.metadata.timestamp = `${date}T00:00:00.000Z`
  own.name = published.name
  if (gitHead !== null) own.version += `+${gitHead.slice(0, 8)}`
  // npm does not tell bundled packages from development dependencies.
  const known = new Map(bill.components.map((component) => [component['bom-ref'], component]))
  bill.components = Object.entries(bundled).map(([name, kind]) => {
    if (!known.has(name)) throw new Error(`${name} is bundled, and package-lock.json does not have it`)
    const licenses = [{ license: { name: kind } }]
    return { licenses, ...known.get(name), scope: 'required', properties: [] }
  })
  bill.dependencies = bill.dependencies
    .filter(({ ref }) => ref === own['bom-ref'] || ref in bundled)
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((name) => name in bundled) }))
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
