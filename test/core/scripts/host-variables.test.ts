import test from 'ava'
import { hostVariables } from '../../../src/core/scripts/host-variables.ts'

const host = { id: 7, hostname: 'web1', tags: {}, clusters: [] }

test('A16 a script gets host, id, clusters and tags; a tag gets a variable if its key gives a unique name', (t) => {
  const tags = { role: 'web', Rack: 'b "7"', 'os-name': 'x', a1: '', zone: '1', ZONE: '2', 'app/part': 'y' }
  t.deepEqual(hostVariables({ ...host, tags, clusters: ['web', 'night shift'] }), {
    RSM_HOST: 'web1',
    RSM_HOST_ID: '7',
    RSM_CLUSTERS: 'web,night shift',
    RSM_TAGS: JSON.stringify(tags),
    RSM_TAG_ROLE: 'web',
    RSM_TAG_RACK: 'b "7"',
    RSM_TAG_A1: '',
  })
  t.deepEqual(hostVariables(host), { RSM_HOST: 'web1', RSM_HOST_ID: '7', RSM_CLUSTERS: '', RSM_TAGS: '{}' })
})

test('A16 the variables of a host have at most 64 KiB, whatever its tags and clusters', (t) => {
  const value = 'ü'.repeat(256)
  const many = Object.fromEntries(Array.from({ length: 80 }, (_, at) => [`tag${at}`, value]))
  const told = hostVariables({ ...host, tags: many })
  t.is(told['RSM_TAGS'], JSON.stringify(many))
  t.is(told['RSM_TAG_TAG0'], value)
  t.is(told['RSM_TAG_TAG79'], undefined)
  const more = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`tag${at}`, value]))
  const clusters = Array.from({ length: 5000 }, (_, at) => `cluster-with-a-long-name-${at}`)
  const all = hostVariables({ ...host, tags: more, clusters })
  t.is(all['RSM_HOST'], 'web1')
  t.is(all['RSM_TAGS'], undefined)
  t.is(all['RSM_CLUSTERS'], undefined)
  t.true(Buffer.byteLength(JSON.stringify(all)) < 100 * 1024)
})
