"""The custom resources: their models, their rules, and the CRDs that are generated from them."""
