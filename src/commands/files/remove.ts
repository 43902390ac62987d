import { removalCommand } from '../../cli/command/removal.ts'
import { findUpload } from '../../cli/names/id-parts.ts'
import { showBytes } from '../../cli/text/amounts.ts'

export default removalCommand({
  summary: 'Remove unused uploads; their tasks cannot be retried',
  examples: ['$ rsm files remove 01KA2B --yes'],
  arg: ['upload', 'upload ids, or their first or last 6 characters'],
  noun: 'upload',
  nameOf: ({ id, name, offset }) => `${name ?? id} (${showBytes(offset)})`,
  find: findUpload,
  remove: (client, id) => client.files.remove(id),
})
