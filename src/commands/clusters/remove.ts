import { namesToRemove, removalCommand } from '../../ui/command/removal.ts'
import { findCluster } from '../../ui/names/names.ts'

export default removalCommand({
  summary: 'Remove a cluster; its hosts stay',
  examples: ['$ rsm clusters remove web --yes'],
  args: { cluster: namesToRemove('names of clusters') },
  noun: 'cluster',
  nameOf: ({ name }) => name,
  find: findCluster,
  remove: (client, id) => client.clusters.remove(id),
})
