import { scheduledFilesContract } from '../../contracts/scheduled-files.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'

scheduledFilesContract(test, 'on PostgreSQL', async (t) => (await startCluster(t, { size: 1 })).front)
