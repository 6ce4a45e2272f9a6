from django.db import models


class Order(models.Model):
    email = models.EmailField()


class Invoice(models.Model):
    order = models.OneToOneField(Order, on_delete=models.CASCADE)
