"""What a person is compared with: populations, their calibrations, and the tenant's other people."""
