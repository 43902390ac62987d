import test from 'ava'
import { clustersContract } from '../../contracts/clusters.ts'
import { servicesOnStore } from '../../helpers/services.ts'

clustersContract(test, 'on the store,', servicesOnStore)
